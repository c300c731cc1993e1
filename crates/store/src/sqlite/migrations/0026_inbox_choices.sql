-- Requests to enqueue have a priority, and a choice about an unfinished job of their key. Both are checked where the request is read.
alter table everbell_inbox add column priority integer;
alter table everbell_inbox add column if_unfinished text;
