select current_setting('server_version') as product,
       pg_database_size(current_database()) as size_bytes,
       (select min(xact_start) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend') as oldest_transaction_at
