//! The little SQL that the scripted server reads: one `SELECT` from one table. Lexed by the language's own rules
//! for names in brackets, texts and comments, so that a name that was not quoted properly is a syntax error here
//! too, or another statement.

#[derive(Clone, PartialEq, Debug)]
pub enum Lexeme {
    /// A word without quotes, in capitals.
    Word(String),
    /// A name in brackets.
    Name(String),
    Text(String),
    Number(f64),
    Variable(String),
    Sign(&'static str),
}

/// Signs, longer ones first.
const SIGNS: [&str; 11] = ["<=", ">=", "<>", "<", ">", "=", "(", ")", ",", ".", ";"];

/// Takes a statement apart.
pub fn lex(sql: &str) -> Result<Vec<Lexeme>, String> {
    let mut lexemes = Vec::new();
    let mut rest = sql.trim_start();
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("--") {
            rest = rest.split_once('\n').map_or("", |(_, after)| after.trim_start());
            continue;
        }
        let (lexeme, length) = if let Some(inner) = rest.strip_prefix('[') {
            let (name, length) = quoted(inner, ']').ok_or("a name without its end")?;
            (Lexeme::Name(name), length + 1)
        } else if let Some(inner) = rest.strip_prefix("N'").or_else(|| rest.strip_prefix('\'')) {
            let (text, length) = quoted(inner, '\'').ok_or("a text without its end")?;
            (Lexeme::Text(text), rest.len() - inner.len() + length)
        } else if first == '@' {
            let length = rest[1..].find(|c: char| !c.is_ascii_alphanumeric()).map_or(rest.len(), |n| n + 1);
            (Lexeme::Variable(rest[1..length].to_owned()), length)
        } else if first.is_ascii_digit() {
            let length = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            (Lexeme::Number(rest[..length].parse().map_err(|_| "a number")?), length)
        } else if first.is_ascii_alphabetic() {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            (Lexeme::Word(rest[..length].to_ascii_uppercase()), length)
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| format!("incorrect syntax near '{first}'"))?;
            (Lexeme::Sign(sign), sign.len())
        };
        lexemes.push(lexeme);
        rest = rest[length..].trim_start();
    }
    Ok(lexemes)
}

/// What stands before the closing mark, which stands for itself when doubled, and how long that is with the mark.
fn quoted(text: &str, close: char) -> Option<(String, usize)> {
    let mut name = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c != close {
            name.push(c);
        } else if chars.peek().is_some_and(|(_, next)| *next == close) {
            name.push(close);
            chars.next();
        } else {
            return Some((name, at + 1));
        }
    }
    None
}

#[derive(Clone, PartialEq, Debug)]
pub enum Expression {
    Column(String),
    Variable(String),
    Number(f64),
    Text(String),
    Null,
    /// To a type with its arguments, with a style.
    Convert(String, Vec<Option<u16>>, Box<Expression>, i64),
    Substring(Box<Expression>, usize, usize),
    ToString(Box<Expression>),
    Compare(Box<Expression>, &'static str, Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Select {
    pub top: Option<u64>,
    pub columns: Vec<Expression>,
    pub schema: String,
    pub table: String,
    /// Percent, and the seed.
    pub sample: Option<(f64, u64)>,
    pub condition: Option<Expression>,
    pub order: Vec<String>,
    /// Rows left out before the one that is wanted.
    pub offset: Option<u64>,
}

pub fn parse(lexemes: Vec<Lexeme>) -> Result<Select, String> {
    let mut parser = Parser { lexemes, at: 0 };
    let select = parser.select()?;
    parser.skip(&Lexeme::Sign(";"));
    match parser.lexemes.get(parser.at) {
        None => Ok(select),
        Some(rest) => Err(format!("incorrect syntax near {rest:?}")),
    }
}

struct Parser {
    lexemes: Vec<Lexeme>,
    at: usize,
}

impl Parser {
    fn next(&mut self) -> Result<Lexeme, String> {
        let lexeme = self.lexemes.get(self.at).cloned().ok_or("unexpected end")?;
        self.at += 1;
        Ok(lexeme)
    }

    fn skip(&mut self, lexeme: &Lexeme) -> bool {
        let is_next = self.lexemes.get(self.at) == Some(lexeme);
        self.at += usize::from(is_next);
        is_next
    }

    fn word(&mut self, word: &str) -> bool {
        self.skip(&Lexeme::Word(word.to_owned()))
    }

    fn sign(&mut self, sign: &'static str) -> bool {
        self.skip(&Lexeme::Sign(sign))
    }

    fn expect(&mut self, is_there: bool, what: &str) -> Result<(), String> {
        let near = self.lexemes.get(self.at);
        if is_there { Ok(()) } else { Err(format!("expected {what} near {near:?}")) }
    }

    fn words(&mut self, words: &[&str]) -> Result<(), String> {
        for word in words {
            let is_there = self.word(word);
            self.expect(is_there, word)?;
        }
        Ok(())
    }

    fn signs(&mut self, sign: &'static str) -> Result<(), String> {
        let is_there = self.sign(sign);
        self.expect(is_there, sign)
    }

    fn name(&mut self) -> Result<String, String> {
        match self.next()? {
            Lexeme::Name(name) => Ok(name),
            other => Err(format!("expected a name near {other:?}")),
        }
    }

    fn number(&mut self) -> Result<f64, String> {
        match self.next()? {
            Lexeme::Number(number) => Ok(number),
            other => Err(format!("expected a number near {other:?}")),
        }
    }

    fn select(&mut self) -> Result<Select, String> {
        let mut select = Select::default();
        self.words(&["SELECT"])?;
        if self.word("TOP") {
            self.signs("(")?;
            select.top = Some(self.number()? as u64);
            self.signs(")")?;
        }
        select.columns.push(self.expression()?);
        while self.sign(",") {
            select.columns.push(self.expression()?);
        }
        self.words(&["FROM"])?;
        select.schema = self.name()?;
        self.signs(".")?;
        select.table = self.name()?;
        if self.word("TABLESAMPLE") {
            self.words(&["SYSTEM"])?;
            self.signs("(")?;
            let percent = self.number()?;
            self.words(&["PERCENT"])?;
            self.signs(")")?;
            self.words(&["REPEATABLE"])?;
            self.signs("(")?;
            select.sample = Some((percent, self.number()? as u64));
            self.signs(")")?;
        }
        if self.word("WHERE") {
            select.condition = Some(self.condition()?);
        }
        if self.word("ORDER") {
            self.words(&["BY"])?;
            select.order.push(self.name()?);
            while self.sign(",") {
                select.order.push(self.name()?);
            }
        }
        if self.word("OFFSET") {
            select.offset = Some(self.number()? as u64);
            self.words(&["ROWS", "FETCH", "NEXT"])?;
            select.top = Some(self.number()? as u64);
            self.words(&["ROWS", "ONLY"])?;
        }
        Ok(select)
    }

    /// `OR` binds less than `AND`, as in the language.
    fn condition(&mut self) -> Result<Expression, String> {
        let mut left = self.conjunction()?;
        while self.word("OR") {
            left = Expression::Or(Box::new(left), Box::new(self.conjunction()?));
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Expression, String> {
        let mut left = self.comparison()?;
        while self.word("AND") {
            left = Expression::And(Box::new(left), Box::new(self.comparison()?));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Expression, String> {
        if self.sign("(") {
            let inner = self.condition()?;
            self.signs(")")?;
            return Ok(inner);
        }
        let left = self.expression()?;
        match self.next()? {
            Lexeme::Sign(sign @ ("<" | ">" | "<=" | ">=" | "=")) => {
                Ok(Expression::Compare(Box::new(left), sign, Box::new(self.expression()?)))
            }
            other => Err(format!("expected a comparison near {other:?}")),
        }
    }

    fn expression(&mut self) -> Result<Expression, String> {
        let mut expression = match self.next()? {
            Lexeme::Name(name) => Expression::Column(name),
            Lexeme::Variable(name) => Expression::Variable(name),
            Lexeme::Number(number) => Expression::Number(number),
            Lexeme::Text(text) => Expression::Text(text),
            Lexeme::Word(word) if word == "NULL" => Expression::Null,
            Lexeme::Word(word) if word == "CONVERT" => self.convert()?,
            Lexeme::Word(word) if word == "SUBSTRING" => self.substring()?,
            other => return Err(format!("expected an expression near {other:?}")),
        };
        while self.sign(".") {
            self.words(&["TOSTRING"])?;
            self.signs("(")?;
            self.signs(")")?;
            expression = Expression::ToString(Box::new(expression));
        }
        Ok(expression)
    }

    fn convert(&mut self) -> Result<Expression, String> {
        self.signs("(")?;
        let Lexeme::Word(of) = self.next()? else { return Err("expected a type".to_owned()) };
        let mut arguments = Vec::new();
        if self.sign("(") {
            loop {
                arguments.push(if self.word("MAX") { None } else { Some(self.number()? as u16) });
                if !self.sign(",") {
                    break;
                }
            }
            self.signs(")")?;
        }
        self.signs(",")?;
        let what = self.expression()?;
        let style = if self.sign(",") { self.number()? as i64 } else { 0 };
        self.signs(")")?;
        Ok(Expression::Convert(of.to_ascii_lowercase(), arguments, Box::new(what), style))
    }

    fn substring(&mut self) -> Result<Expression, String> {
        self.signs("(")?;
        let what = self.expression()?;
        self.signs(",")?;
        let from = self.number()? as usize;
        self.signs(",")?;
        let count = self.number()? as usize;
        self.signs(")")?;
        Ok(Expression::Substring(Box::new(what), from, count))
    }
}
