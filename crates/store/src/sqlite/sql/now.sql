-- The clock is the host's, which is finer than the milliseconds of SQLite; this proves that the database can be read.
select count(*) from everbell_migrations
