//! The namespace: named objects in one ordered map, and the rules for finding names (section 5.3).

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;

use super::Error;
use super::path::{Name, Path};
use super::value::{Target, Value};

#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    Value(Value),
    Method {
        arguments: u8,
        body: Rc<[u8]>,
        native: bool,
    },
    Scope,
    Device,
    Processor {
        id: u8,
    },
    Region(Region),
    /// Bits of an operation region; never written.
    Field(Field),
    /// A field behind an index or a bank register, which would have to be written first: it is never read.
    IndirectField,
    BufferField {
        source: Target,
        bit: usize,
        bits: usize,
    },
    Alias(Path),
    Mutex,
}

/// An operation region (section 19.6.100). `None` stands for what its terms do not give.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    pub space: u8,
    pub address: Option<u64>,
    pub length: Option<u64>,
    /// The scope that declares it: for PCI configuration space, the device.
    pub scope: Path,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub region: Path,
    pub bit: u64,
    pub bits: u64,
    /// Bytes of one access (section 19.6.48, "AccessType").
    pub access: u64,
}

const OBJECTS_MAX: usize = 100_000;
const ALIASES_MAX: usize = 8;

#[derive(Debug, Default)]
pub struct Namespace {
    objects: BTreeMap<Path, Object>,
}

impl Namespace {
    /// Section 5.3.1, and `_OSI` (5.7.2), `_REV`, `_OS`, `_GL`.
    pub fn predefined() -> Self {
        let mut namespace = Self::default();
        let mut put = |name: &str, object: Object| {
            if let Some(path) = Path::parse(name) {
                namespace.objects.insert(path, object);
            }
        };
        put("", Object::Scope);
        ["_SB", "_GPE", "_PR", "_SI", "_TZ"].into_iter().for_each(|scope| put(scope, Object::Scope));
        put("_GL", Object::Mutex);
        put("_REV", Object::Value(Value::Integer(2)));
        put("_OS", Object::Value(Value::String("Microsoft Windows NT".into())));
        put("_OSI", Object::Method { arguments: 1, body: Rc::from([]), native: true });
        namespace
    }

    pub fn get(&self, path: &Path) -> Option<&Object> {
        self.objects.get(path)
    }

    /// Restores a former object, or its absence.
    pub fn restore(&mut self, path: &Path, object: Option<Object>) {
        match object {
            Some(object) => self.objects.insert(path.clone(), object),
            None => self.objects.remove(path),
        };
    }

    pub fn get_mut(&mut self, path: &Path) -> Option<&mut Object> {
        self.objects.get_mut(path)
    }

    pub fn insert(&mut self, path: Path, object: Object) -> Result<(), Error> {
        if self.objects.len() >= OBJECTS_MAX {
            return Err(Error::TooLarge);
        }
        self.objects.insert(path, object);
        Ok(())
    }

    pub fn remove(&mut self, path: &Path) {
        self.objects.remove(path);
    }

    /// Finds a name as seen from `scope`, through aliases.
    pub fn find(&self, name: &Name, scope: &Path) -> Option<Path> {
        let mut scope = scope.clone();
        loop {
            let candidate = name.in_scope(&scope);
            if self.objects.contains_key(&candidate) {
                return self.behind_aliases(candidate);
            }
            if !name.is_searched() || scope.0.is_empty() {
                return None;
            }
            scope = scope.parent();
        }
    }

    /// The object's path behind all aliases; `None` if there is no object.
    pub fn behind_aliases(&self, mut path: Path) -> Option<Path> {
        for _ in 0..ALIASES_MAX {
            match self.objects.get(&path)? {
                Object::Alias(target) => path = target.clone(),
                _ => return Some(path),
            }
        }
        None
    }

    /// Processor objects with their id, and devices that have a `_HID`.
    pub fn processor_candidates(&self) -> Vec<(Path, Option<u8>)> {
        let candidate = |(path, object): (&Path, &Object)| match object {
            Object::Processor { id } => Some((path.clone(), Some(*id))),
            Object::Device if self.objects.contains_key(&path.child(*b"_HID")) => Some((path.clone(), None)),
            _ => None,
        };
        self.objects.iter().filter_map(candidate).collect()
    }
}

/// The answer of `_OSI`: yes to the same strings as Linux, which are the Windows versions that firmware asks for.
pub fn osi(argument: Option<&Value>) -> u64 {
    match argument {
        Some(Value::String(name)) if name.starts_with("Windows ") || name == "Processor Device" => u64::MAX,
        _ => 0,
    }
}
