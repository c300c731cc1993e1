-- How many connections everybody may have, and how many instances there are to share them.
select current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint as allowed,
       (select count(*) from everbell.instances) as instances
