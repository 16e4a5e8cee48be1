//! Keys, values and their time to live.
//!
//! **Problem.** Each command needs a value of one kind: absent is one case, of another kind is an error, and an expired
//! key must look absent. An aggregate that becomes empty must vanish with its key.
//!
//! **Idea.** [`Kind`] ties a Rust type to a variant of [`Value`]; `read`, `write` and `edit` answer the questions once.
//! Expired keys are removed when somebody looks. The time is a number that the loop sets once per turn, plus an offset by
//! which a test lets time pass.
//!
//! **Invariant.** No empty aggregate is stored. A key that is due is never seen by a command.

use super::Failure;
use super::hasher::BuildFastHasher;
use super::zset::SortedSet;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// The number of databases, as in the default configuration.
pub(crate) const DATABASES: usize = 16;

pub(crate) type Bytes = Vec<u8>;
pub(crate) type Hash = BTreeMap<Vec<u8>, Vec<u8>>;
pub(crate) type List = VecDeque<Vec<u8>>;
pub(crate) type Set = BTreeSet<Vec<u8>>;

/// Fields and members are kept in byte order: the real order depends on size and history, and a test must not.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Bytes(Bytes),
    Hash(Hash),
    List(List),
    Set(Set),
    SortedSet(SortedSet),
}

impl Value {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Bytes(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::SortedSet(_) => "zset",
        }
    }
}

/// A Rust type that is one kind of value.
pub(crate) trait Kind: Default {
    fn of(value: &mut Value) -> Option<&mut Self>;
    fn wrap(self) -> Value;
    /// Whether the key must vanish; a string may be empty.
    fn is_nothing(&self) -> bool;
}

macro_rules! kind {
    ($type:ty, $variant:ident, |$it:ident| $nothing:expr) => {
        impl Kind for $type {
            fn of(value: &mut Value) -> Option<&mut Self> {
                match value {
                    Value::$variant(inside) => Some(inside),
                    _ => None,
                }
            }
            fn wrap(self) -> Value {
                Value::$variant(self)
            }
            fn is_nothing(&self) -> bool {
                let $it = self;
                $nothing
            }
        }
    };
}

kind!(Bytes, Bytes, |_it| false);
kind!(Hash, Hash, |it| it.is_empty());
kind!(List, List, |it| it.is_empty());
kind!(Set, Set, |it| it.is_empty());
kind!(SortedSet, SortedSet, |it| it.len() == 0);

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    /// Milliseconds since the epoch.
    pub(crate) expires_at: Option<i64>,
}

#[derive(Default)]
struct Database {
    entries: HashMap<Box<[u8]>, Entry, BuildFastHasher>,
    /// Whether any key ever had a time to live; without, looking up needs no second look.
    has_expiring: bool,
}

/// All databases, the selected one, and the time.
pub(crate) struct Store {
    databases: Vec<Database>,
    selected: usize,
    /// Milliseconds since the epoch, offset included.
    pub(crate) now: i64,
}

impl Default for Store {
    fn default() -> Self {
        Self { databases: (0..DATABASES).map(|_| Database::default()).collect(), selected: 0, now: 0 }
    }
}

impl Store {
    /// Selects the database for the following calls; `index` was checked by `SELECT`.
    pub(crate) fn select(&mut self, index: usize) {
        assert!(index < DATABASES, "database {index} does not exist");
        self.selected = index;
    }

    fn database(&mut self) -> &mut Database {
        &mut self.databases[self.selected]
    }

    /// The entry of `key`, unless it has expired.
    pub(crate) fn entry(&mut self, key: &[u8]) -> Option<&mut Entry> {
        let now = self.now;
        let database = self.database();
        if database.has_expiring
            && let Some(Entry { expires_at: Some(due), .. }) = database.entries.get(key)
            && *due <= now
        {
            database.entries.remove(key);
            return None;
        }
        database.entries.get_mut(key)
    }

    /// The value of `key` as a `T`.
    pub(crate) fn read<T: Kind>(&mut self, key: &[u8]) -> Result<Option<&mut T>, Failure> {
        match self.entry(key) {
            None => Ok(None),
            Some(entry) => T::of(&mut entry.value).map(Some).ok_or(Failure::WrongType),
        }
    }

    /// The value of `key` as a `T`, made when absent. The caller puts something into it.
    pub(crate) fn write<T: Kind>(&mut self, key: &[u8]) -> Result<&mut T, Failure> {
        if self.entry(key).is_none() {
            self.insert(key, T::default().wrap(), None);
        }
        self.read(key)?.ok_or(Failure::WrongType)
    }

    /// Changes the value of `key`, if there is one, and removes the key when nothing is left of it.
    pub(crate) fn edit<T: Kind, R: Default>(
        &mut self,
        key: &[u8],
        edit: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Failure> {
        let Some(value) = self.read::<T>(key)? else { return Ok(R::default()) };
        let result = edit(value);
        if value.is_nothing() {
            self.remove(key);
        }
        Ok(result)
    }

    /// Stores a whole value, whatever was there.
    pub(crate) fn insert(&mut self, key: &[u8], value: Value, expires_at: Option<i64>) {
        let database = self.database();
        database.has_expiring |= expires_at.is_some();
        database.entries.insert(key.into(), Entry { value, expires_at });
    }

    /// Stores a string; the old string's memory is used again.
    pub(crate) fn insert_bytes(&mut self, key: &[u8], bytes: &[u8], expires_at: Option<i64>) {
        let database = self.database();
        database.has_expiring |= expires_at.is_some();
        match database.entries.get_mut(key) {
            Some(Entry { value: Value::Bytes(old), expires_at: old_expiry }) => {
                old.clear();
                old.extend_from_slice(bytes);
                *old_expiry = expires_at;
            }
            _ => self.insert(key, Value::Bytes(bytes.to_vec()), expires_at),
        }
    }

    /// Sets or clears the time to live of a key that exists; a moment that has passed removes it.
    pub(crate) fn expire(&mut self, key: &[u8], expires_at: Option<i64>) {
        if expires_at.is_some_and(|due| due <= self.now) {
            self.remove(key);
            return;
        }
        let database = self.database();
        database.has_expiring |= expires_at.is_some();
        if let Some(entry) = database.entries.get_mut(key) {
            entry.expires_at = expires_at;
        }
    }

    /// Removes a key; `None` when it was absent or expired.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        self.entry(key)?;
        self.database().entries.remove(key)
    }

    /// All keys of the selected database that have not expired.
    pub(crate) fn keys(&mut self) -> impl Iterator<Item = (&[u8], &Entry)> {
        let now = self.now;
        let live = move |entry: &Entry| entry.expires_at.is_none_or(|due| due > now);
        let entries = self.database().entries.iter();
        entries.filter(move |(_, entry)| live(entry)).map(|(key, entry)| (&**key, entry))
    }

    pub(crate) fn flush(&mut self) {
        *self.database() = Database::default();
    }

    pub(crate) fn flush_all(&mut self) {
        self.databases.iter_mut().for_each(|database| *database = Database::default());
    }
}
