//! The rule families compiled in: one line each. A new family is a file in `rules/` and a line here.

macro_rules! families {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../rules/", $name)))),*]
    };
}

pub const FAMILIES: &[(&str, &str)] = families![
    "health.toml",
    "markings.toml",
    "personal-americas.toml",
    "personal-asia.toml",
    "personal-contact.toml",
    "personal-europe.toml",
    "personal-finance.toml",
    "secret-cloud.toml",
    "secret-code-hosting.toml",
    "secret-credentials.toml",
    "secret-generic.toml",
    "secret-infrastructure.toml",
    "secret-keys.toml",
    "secret-services.toml",
];
