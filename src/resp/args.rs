//! What can be an argument of a command.

use super::encode::Encoder;
use super::reply::Blob;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// Any number of arguments: a string or a number is one, a list is its elements, a map its keys and values in turn, a
/// tuple its parts one after another, `None` is nothing.
///
/// ```
/// use respiral::resp::ToArgs;
/// assert_eq!("key".count(), 1);
/// assert_eq!(vec![1u8, 2, 3].count(), 1); // bytes are one string
/// assert_eq!(vec![1u16, 2, 3].count(), 3);
/// assert_eq!(("key", Some(7), None::<i64>).count(), 2);
/// ```
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be arguments of a command")]
pub trait ToArgs {
    /// How many arguments [`write`](Self::write) writes.
    fn count(&self) -> usize;

    /// Writes them. It must not use the client, which is writing.
    fn write(&self, encoder: &mut Encoder<'_>);

    /// How many arguments a list of these is; bytes are one.
    #[doc(hidden)]
    fn count_list(list: &[Self]) -> usize
    where
        Self: Sized,
    {
        list.iter().map(ToArgs::count).sum()
    }

    /// Writes a list of these.
    #[doc(hidden)]
    fn write_list(list: &[Self], encoder: &mut Encoder<'_>)
    where
        Self: Sized,
    {
        list.iter().for_each(|item| item.write(encoder));
    }
}

/// Exactly one argument: a key, a field, a value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a single argument",
    note = "keys and values are strings, bytes or numbers",
    note = "for a type of your own implement `respiral::ToArgs`, and `respiral::ToArg` when it is always one argument"
)]
pub trait ToArg: ToArgs {}

/// Writes one argument.
macro_rules! single {
    ($([$($generics:tt)*] $type:ty: |$value:ident, $encoder:ident| $write:expr;)*) => {$(
        impl<$($generics)*> ToArgs for $type {
            #[inline]
            fn count(&self) -> usize {
                1
            }

            #[inline(always)]
            fn write(&self, $encoder: &mut Encoder<'_>) {
                let $value = self;
                $write
            }
        }

        impl<$($generics)*> ToArg for $type {}
    )*};
}

single! {
    [] str: |value, encoder| encoder.arg(value.as_bytes());
    [] String: |value, encoder| encoder.arg(value.as_bytes());
    [] Cow<'_, str>: |value, encoder| encoder.arg(value.as_bytes());
    [] Cow<'_, [u8]>: |value, encoder| encoder.arg(value);
    [] bytes::Bytes: |value, encoder| encoder.shared(value);
    [] bytes::BytesMut: |value, encoder| encoder.arg(value);
    [] Blob: |value, encoder| match value.as_slice() {
        Some(bytes) => encoder.arg(bytes),
        None => encoder.chunks(value.chunks()),
    };
    [] char: |value, encoder| encoder.arg(value.encode_utf8(&mut [0; 4]).as_bytes());
    [] bool: |value, encoder| encoder.arg(if *value { b"1" } else { b"0" });
    [] f64: |value, encoder| encoder.float(*value);
    [] f32: |value, encoder| encoder.display_float(f64::from(*value), *value);
    [] i8: |value, encoder| encoder.int(i64::from(*value));
    [] i16: |value, encoder| encoder.int(i64::from(*value));
    [] i32: |value, encoder| encoder.int(i64::from(*value));
    [] i64: |value, encoder| encoder.int(*value);
    [] isize: |value, encoder| encoder.int(*value as i64);
    [] i128: |value, encoder| encoder.arg(itoa::Buffer::new().format(*value).as_bytes());
    [] u16: |value, encoder| encoder.uint(u64::from(*value));
    [] u32: |value, encoder| encoder.uint(u64::from(*value));
    [] u64: |value, encoder| encoder.uint(*value);
    [] usize: |value, encoder| encoder.uint(*value as u64);
    [] u128: |value, encoder| encoder.arg(itoa::Buffer::new().format(*value).as_bytes());
}

/// A number when it stands alone; a list of them is a string.
impl ToArgs for u8 {
    fn count(&self) -> usize {
        1
    }

    fn write(&self, encoder: &mut Encoder<'_>) {
        encoder.uint(u64::from(*self));
    }

    #[inline]
    fn count_list(_: &[Self]) -> usize {
        1
    }

    #[inline(always)]
    fn write_list(list: &[Self], encoder: &mut Encoder<'_>) {
        encoder.arg(list);
    }
}

impl ToArg for u8 {}

impl<T: ToArgs> ToArgs for [T] {
    #[inline]
    fn count(&self) -> usize {
        T::count_list(self)
    }

    #[inline(always)]
    fn write(&self, encoder: &mut Encoder<'_>) {
        T::write_list(self, encoder);
    }
}

impl<T: ToArgs, const N: usize> ToArgs for [T; N] {
    #[inline]
    fn count(&self) -> usize {
        T::count_list(self)
    }

    #[inline(always)]
    fn write(&self, encoder: &mut Encoder<'_>) {
        T::write_list(self, encoder);
    }
}

impl<T: ToArgs> ToArgs for Vec<T> {
    #[inline]
    fn count(&self) -> usize {
        T::count_list(self)
    }

    #[inline(always)]
    fn write(&self, encoder: &mut Encoder<'_>) {
        T::write_list(self, encoder);
    }
}

impl ToArg for [u8] {}
impl<const N: usize> ToArg for [u8; N] {}
impl ToArg for Vec<u8> {}

/// Whatever points to arguments is these arguments.
macro_rules! pointers {
    ($($type:ty),*) => {$(
        impl<T: ToArgs + ?Sized> ToArgs for $type {
            #[inline]
            fn count(&self) -> usize {
                (**self).count()
            }

            #[inline(always)]
            fn write(&self, encoder: &mut Encoder<'_>) {
                (**self).write(encoder);
            }
        }

        impl<T: ToArg + ?Sized> ToArg for $type {}
    )*};
}

pointers!(&T, &mut T, Box<T>, Rc<T>, Arc<T>);

impl<T: ToArgs> ToArgs for Option<T> {
    fn count(&self) -> usize {
        self.as_ref().map_or(0, ToArgs::count)
    }

    fn write(&self, encoder: &mut Encoder<'_>) {
        if let Some(value) = self {
            value.write(encoder);
        }
    }
}

macro_rules! sets {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<T: ToArgs, $($generics)*> ToArgs for $type {
            fn count(&self) -> usize {
                self.iter().map(ToArgs::count).sum()
            }

            fn write(&self, encoder: &mut Encoder<'_>) {
                self.iter().for_each(|item| item.write(encoder));
            }
        }
    )*};
}

sets! {
    [S] HashSet<T, S>;
    [] BTreeSet<T>;
    [] std::collections::VecDeque<T>;
}

macro_rules! maps {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<K: ToArgs, V: ToArgs, $($generics)*> ToArgs for $type {
            fn count(&self) -> usize {
                self.iter().map(|(key, value)| key.count() + value.count()).sum()
            }

            fn write(&self, encoder: &mut Encoder<'_>) {
                for (key, value) in self {
                    key.write(encoder);
                    value.write(encoder);
                }
            }
        }
    )*};
}

maps! {
    [S] HashMap<K, V, S>;
    [] BTreeMap<K, V>;
}

/// No arguments.
impl ToArgs for () {
    fn count(&self) -> usize {
        0
    }

    fn write(&self, _: &mut Encoder<'_>) {}
}

macro_rules! tuples {
    ($($($name:ident $index:tt)*;)*) => {$(
        impl<$($name: ToArgs),*> ToArgs for ($($name,)*) {
            fn count(&self) -> usize {
                0 $(+ self.$index.count())*
            }

            fn write(&self, encoder: &mut Encoder<'_>) {
                $(self.$index.write(encoder);)*
            }
        }
    )*};
}

tuples! {
    A 0;
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 E 4;
    A 0 B 1 C 2 D 3 E 4 F 5;
}
