select exists (select 1 from everbell_orgs where waiting) or exists (select 1 from everbell_sweeps) or exists (select 1 from everbell_orgs where deleted)
       as needed
