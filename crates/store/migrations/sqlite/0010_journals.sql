-- The identity of the store, and which files of the journal are in use, so that a journal that is missing or belongs to
-- another store is noticed. store.id: 16 random bytes, new for each store and after each restore. store.journals: the
-- number of the next journal file, a colon, and the numbers of those that exist, in decimal with commas; 'older' until
-- the first start, because files that were written before have no identity.
INSERT INTO meta (name, value) VALUES ('store.id', randomblob(16)), ('store.journals', CAST('older' AS BLOB));
