//! The everyday commands as types, a file per group. `Client` has a method for each.

pub mod string;

/// Implements [`Command`](crate::command::Command) for a command whose arguments are all required: the name, the
/// pre-encoded frame header with the name, then one argument after the other.
macro_rules! fixed {
    ($(#[$doc:meta])* $type:ident<$($generic:ident),*>, $name:literal, $prefix:literal, $($field:ident),*) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $type<$($generic),*> {
            $(pub(crate) $field: $generic,)*
        }

        impl<$($generic: crate::resp::ToArg),*> crate::command::Command for $type<$($generic),*> {
            fn name(&self) -> crate::error::CommandName {
                $name.into()
            }

            #[inline]
            fn encode(&self, encoder: &mut crate::resp::Encoder<'_>) {
                encoder.raw($prefix);
                $(self.$field.write(encoder);)*
            }
        }
    };
}
use fixed;
