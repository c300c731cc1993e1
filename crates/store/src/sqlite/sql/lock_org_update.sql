-- The one that waits longest, of those that no other of the same job key comes before.
select id, job_id, job_key, work, detail, actor, at, reached, seen from everbell_sweeps s
where not exists (select 1 from everbell_sweeps b where b.job_key = s.job_key and b.id < s.id)
order by s.stepped_at, s.id limit 1
