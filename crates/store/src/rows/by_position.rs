//! Rows of the hot path are read by the positions of their columns: to look for each by its name costs more than to
//! read it.

/// Reads a struct from a row of either database whose columns begin with these fields, in this order.
macro_rules! by_position {
    ($columns:ident { $($field:ident),+ $(,)? }) => {
        #[cfg(feature = "postgres")]
        $crate::rows::by_position::by_position!(sqlx::postgres::PgRow, $columns { $($field),+ });
        #[cfg(feature = "sqlite")]
        $crate::rows::by_position::by_position!(sqlx::sqlite::SqliteRow, $columns { $($field),+ });
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
