select sqlite_version() as product,
       (select page_count from pragma_page_count) * (select page_size from pragma_page_size) as size_bytes
