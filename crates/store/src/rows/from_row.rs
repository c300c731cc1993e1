//! Rows as structs. Written out for each database instead of derived: the derive of sqlx is generic over every database,
//! and to compile it a program would compile both drivers and their runtime a second time, for the compiler itself.

/// Reads a struct from a row of either database by the names of its columns, which are those of the fields. Fields of
/// `flatten` are structs that are read from the same row, those of `default` have no value if their column is not there.
macro_rules! by_name {
    ($columns:ident { $($field:ident),* $(,)? } $($more:tt)*) => {
        #[cfg(feature = "postgres")]
        $crate::rows::from_row::by_name!(sqlx::postgres::PgRow, $columns { $($field),* } $($more)*);
        #[cfg(feature = "sqlite")]
        $crate::rows::from_row::by_name!(sqlx::sqlite::SqliteRow, $columns { $($field),* } $($more)*);
    };
    (
        $row:ty, $columns:ident { $($field:ident),* $(,)? }
        $(flatten { $($part:ident),+ })?
        $(default { $($maybe:ident),+ })?
    ) => {
        impl sqlx::FromRow<'_, $row> for $columns {
            fn from_row(row: &$row) -> sqlx::Result<Self> {
                Ok($columns {
                    $($field: sqlx::Row::try_get(row, stringify!($field))?,)*
                    $($($part: sqlx::FromRow::from_row(row)?,)+)?
                    $($($maybe: $crate::rows::from_row::if_there(sqlx::Row::try_get(row, stringify!($maybe)))?,)+)?
                })
            }
        }
    };
}
pub(crate) use by_name;

/// Reads a struct from a row of either database whose columns begin with these fields, in this order. For rows of the hot
/// path: to look for each column by its name costs more than to read it.
macro_rules! by_position {
    ($columns:ident { $($field:ident),+ $(,)? }) => {
        #[cfg(feature = "postgres")]
        $crate::rows::from_row::by_position!(sqlx::postgres::PgRow, $columns { $($field),+ });
        #[cfg(feature = "sqlite")]
        $crate::rows::from_row::by_position!(sqlx::sqlite::SqliteRow, $columns { $($field),+ });
    };
    ($row:ty, $columns:ident { $($field:ident),+ }) => {
        impl sqlx::FromRow<'_, $row> for $columns {
            fn from_row(row: &$row) -> sqlx::Result<Self> {
                let mut positions = 0_usize..;
                let mut next = || positions.next().unwrap_or_default();
                Ok($columns { $($field: sqlx::Row::try_get(row, next())?),+ })
            }
        }
    };
}
pub(super) use by_position;

/// The default in place of a column that the statement does not have.
pub(crate) fn if_there<T: Default>(read: sqlx::Result<T>) -> sqlx::Result<T> {
    match read {
        Err(sqlx::Error::ColumnNotFound(_)) => Ok(T::default()),
        read => read,
    }
}
