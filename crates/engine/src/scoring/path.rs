//! What the path of an object tells of its findings: whether it is one of tests and samples, or of source code.

use crate::parts::Parts;

/// Parts of paths of tests, samples and fixtures.
static SAMPLES: Parts = Parts::in_any_case(&[
    "test",
    "tests",
    "__tests__",
    "testdata",
    "testing",
    "unittest",
    "unittests",
    "spec",
    "specs",
    "fixture",
    "fixtures",
    "example",
    "examples",
    "sample",
    "samples",
    "demo",
    "demos",
    "mock",
    "mocks",
    "__mocks__",
]);

/// Words of the name of a single file of tests or samples, set off by `.`, `_` or `-`: `app_test.go`, `.env.sample`.
static SAMPLE_WORDS: Parts = Parts::in_any_case(&[
    "test", "tests", "spec", "example", "sample", "template", "dist", "mock", "fixture",
]);

/// Ends of names of programs and of what is written about them, in order.
const CODE: &[&str] = &[
    "adoc", "asm", "awk", "bash", "bat", "c", "cc", "clj", "cmake", "cmd", "cocci", "cpp", "cs", "css",
    "cxx", "dart", "diff", "dts", "dtsi", "el", "erl", "ex", "exs", "go", "h", "hh", "hpp", "hs", "idl",
    "java", "jl", "js", "jsx", "kt", "l", "ld", "less", "lock", "lua", "m", "m4", "mailmap", "md", "mjs",
    "mk", "mm", "patch", "php", "pl", "pm", "po", "proto", "ps1", "py", "pyi", "r", "rb", "rs", "rst", "s",
    "scala", "scss", "sh", "sv", "svg", "swift", "tcl", "tex", "ts", "tsx", "v", "vhd", "vim", "vue", "y",
    "zsh",
];

/// Folders of documentation.
static CODE_FOLDERS: Parts = Parts::in_any_case(&["doc", "docs", "documentation", "man"]);

/// Names of files of a source tree.
static CODE_NAMES: Parts = Parts::in_any_case(&[
    "authors",
    "changelog",
    "changes",
    "contributors",
    "copying",
    "credits",
    "cargo.toml",
    "cargo.toml.orig",
    "composer.json",
    "config.guess",
    "config.sub",
    "configure",
    "dockerfile",
    "kbuild",
    "kconfig",
    "license",
    "maintainers",
    "makefile",
    "news",
    "notice",
    "package.json",
    "pyproject.toml",
    "readme",
    "thanks",
    "todo",
]);

/// What kind of object a path names.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PathKind {
    /// Tests, samples or fixtures.
    pub sample: bool,
    /// Source code or its documentation.
    pub code: bool,
}

impl PathKind {
    pub fn of(path: &[u8]) -> PathKind {
        let mut parts = path.split(|&byte| byte == b'/' || byte == b'\\');
        let kind = PathKind::of_name(parts.next_back().unwrap_or_default());
        parts.fold(kind, |kind, part| kind.or(PathKind::of_folder(part)))
    }

    /// What a folder of that name makes of all that is in it.
    pub fn of_folder(name: &[u8]) -> PathKind {
        PathKind { sample: SAMPLES.has(name), code: CODE_FOLDERS.has(name) }
    }

    /// What its own name makes of an object.
    pub fn of_name(name: &[u8]) -> PathKind {
        let ending = name.iter().rposition(|&byte| byte == b'.').map(|dot| &name[dot + 1..]);
        let is_code = |ending: &[u8]| {
            let ending = ending.iter().map(u8::to_ascii_lowercase);
            CODE.binary_search_by(|known| known.bytes().cmp(ending.clone())).is_ok()
        };
        let code = ending.is_some_and(is_code) || CODE_NAMES.has(name) || name.ends_with(b"defconfig");
        let mut words = name.split(|byte| b"._-".contains(byte));
        let sample = words.any(|word| SAMPLE_WORDS.has(word));
        PathKind { sample, code }.or(PathKind::of_folder(name))
    }

    pub fn or(self, other: PathKind) -> PathKind {
        PathKind { sample: self.sample || other.sample, code: self.code || other.code }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, sample: bool, code: bool) {
        assert_eq!(PathKind::of(path.as_bytes()), PathKind { sample, code }, "{path}");
    }

    #[test]
    fn ends_of_names_are_in_order() {
        assert!(CODE.is_sorted());
    }

    #[test]
    fn paths_tell_tests_and_source_code() {
        check("", false, false);
        check("src/main.RS", false, true);
        check("a/tests/users.csv", true, false);
        check("C:\\work\\examples\\a.py", true, true);
        check("MAINTAINERS", false, true);
        check("a/.mailmap", false, true);
        check("a/Cargo.toml", false, true);
        check("config.toml", false, false);
        check("arch/arm/configs/pxa_defconfig", false, true);
        check("contest/mail.txt", false, false);
        check("dump.c.sql", false, false);
        check("src/login_test.go", true, true);
        check("deploy/.env.example", true, false);
        check("src/latest.json", false, false);
    }
}
