//! Names as they are written, and the absolute paths that they stand for (section 5.3).

use alloc::string::String;
use alloc::vec::Vec;

pub type Seg = [u8; 4];

/// An absolute path.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub(super) Vec<Seg>);

impl Path {
    pub fn root() -> Self {
        Self::default()
    }

    /// Reads `\_SB.CPU0._PSS`; short segments are padded with `_`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('\\').unwrap_or(text);
        let segment = |part: &str| {
            let mut segment = *b"____";
            let fits = (1..=4).contains(&part.len()) && part.is_ascii();
            segment.get_mut(..part.len())?.copy_from_slice(part.as_bytes());
            fits.then_some(segment)
        };
        let parts = text.split('.').filter(|_| !text.is_empty());
        parts.map(segment).collect::<Option<Vec<Seg>>>().map(Self)
    }

    pub fn child(&self, segment: Seg) -> Self {
        let mut path = self.0.clone();
        path.push(segment);
        Self(path)
    }

    pub fn parent(&self) -> Self {
        Self(self.0[..self.0.len().saturating_sub(1)].to_vec())
    }

    pub fn to_text(&self) -> String {
        let names: Vec<String> = self
            .0
            .iter()
            .map(|segment| {
                let name = String::from_utf8_lossy(segment);
                let trimmed = name.trim_end_matches('_');
                if trimmed.is_empty() { "_".into() } else { trimmed.into() }
            })
            .collect();
        alloc::format!("\\{}", names.join("."))
    }
}

/// A name as written in AML.
#[derive(Clone, Debug, Default)]
pub struct Name {
    pub absolute: bool,
    pub parents: usize,
    pub segments: Vec<Seg>,
}

impl Name {
    /// The path of an object that is made under this name.
    pub fn in_scope(&self, scope: &Path) -> Path {
        let kept = scope.0.len().saturating_sub(self.parents);
        let mut path = if self.absolute { Vec::new() } else { scope.0[..kept].to_vec() };
        path.extend_from_slice(&self.segments);
        Path(path)
    }

    /// Whether the name is searched for upward: it has one segment and no prefix.
    pub fn is_searched(&self) -> bool {
        !self.absolute && self.parents == 0 && self.segments.len() == 1
    }
}
