//! The languages of the command: every text stands beside its translation, so that they stay equal.

use std::env;

/// A language of the output. Names, operations and messages of the library stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Lang {
    /// English
    En,
    /// Chinese (中文)
    Zh,
}

/// A text in every language.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    pub en: &'static str,
    pub zh: &'static str,
}

impl Text {
    pub fn of(self, lang: Lang) -> &'static str {
        match lang {
            Lang::En => self.en,
            Lang::Zh => self.zh,
        }
    }
}

impl Lang {
    /// The language that the environment asks for, as POSIX reads it: the first of these that is set decides.
    pub fn from_environment() -> Lang {
        let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
        match ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(set) {
            Some(locale) if locale.starts_with("zh") => Lang::Zh,
            _ => Lang::En,
        }
    }

    /// The same language for a picture's own words.
    pub fn of_picture(self) -> osteon::memory::picture::Lang {
        match self {
            Lang::En => osteon::memory::picture::Lang::En,
            Lang::Zh => osteon::memory::picture::Lang::Zh,
        }
    }
}
