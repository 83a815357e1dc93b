//! What both charts are made of: a page that is readable in light and in dark surroundings, and a logarithmic scale.
//!
//! Written by hand since there is so little of it. Colours follow the reader's choice through a media query, which browsers obey in pictures too. Words
//! stand on a rim in the colour of the page, so that no line runs through them.

use crate::report::times;

/// Of every chart.
pub const WIDTH: f64 = 960.0;

const STYLE: &str = "<style>\
.page{fill:#fff}text{font:13px system-ui,sans-serif;fill:#1f2328;stroke:#fff;stroke-width:3px;paint-order:stroke;stroke-linejoin:round}\
.small{font-size:11px;fill:#59636e}.head{font-weight:600}\
.axis{stroke:#8c959f;stroke-width:1}.grid{stroke:#8c959f;stroke-width:1;stroke-dasharray:2 4;opacity:.6}\
.good{fill:#1a7f37}.bad{fill:#bc4c00}.missed{stroke:#cf222e;stroke-width:2}\
.l0{stroke:#0969da;fill:#0969da}.l1{stroke:#bc4c00;fill:#bc4c00}.l2{stroke:#1a7f37;fill:#1a7f37}.l3{stroke:#8250df;fill:#8250df}\
.t0{fill:#0969da}.t1{fill:#bc4c00}.t2{fill:#1a7f37}.t3{fill:#8250df}\
polyline{fill:none!important;stroke-width:2}polyline.l1,polyline.l3{stroke-dasharray:7 5}\
@media (prefers-color-scheme: dark){.page{fill:#0d1117}text{fill:#e6edf3;stroke:#0d1117}.small{fill:#9198a1}\
.good{fill:#3fb950}.bad{fill:#f0883e}.missed{stroke:#f85149}\
.l0{stroke:#4493f8;fill:#4493f8}.l1{stroke:#f0883e;fill:#f0883e}.l2{stroke:#3fb950;fill:#3fb950}.l3{stroke:#ab7df8;fill:#ab7df8}\
.t0{fill:#4493f8}.t1{fill:#f0883e}.t2{fill:#3fb950}.t3{fill:#ab7df8}}</style>";

/// A logarithmic scale between two powers of ten, on a stretch of the picture.
pub struct Scale {
    /// The power of ten at the begin.
    pub low: f64,
    /// That at the end.
    pub high: f64,
    /// Where it begins.
    pub from: f64,
    /// Where it ends, which may be left of or above its begin.
    pub to: f64,
}

impl Scale {
    /// Where a value is; at an end when it is outside.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value.log10() - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// The powers of ten.
    pub fn decades(&self) -> impl Iterator<Item = f64> {
        (self.low as i32..=self.high as i32).map(|power| 10_f64.powi(power))
    }
}

/// The begin of a picture.
pub fn begin(height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\
         <title>{}</title>{STYLE}<rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>",
        escape(title)
    )
}

/// Of a power of ten: `0.1`, `1`, `1,000`.
pub fn plain(value: f64) -> String {
    if value < 1.0 { value.to_string() } else { times(value) }
}

/// For the text of an element.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
