//! A sheet as one HTML page.

use super::sheet::Sheet;
use crate::lang::Lang;
use osteon::Result;
use osteon::memory::page::{Page, write_file};
use std::path::Path;

pub fn write(sheet: &Sheet, lang: Lang, path: &Path) -> Result<()> {
    let page = Page {
        lang: lang.of_picture(),
        title: &sheet.title,
        markup: include_str!("page.html"),
        style: include_str!("page.css"),
        script: include_str!("page.js"),
        data: sheet,
    };
    write_file(path, "report", |out| page.write(out))
}
