-- A row of a record without a second score names neither of these: most are such, and shorter ones are written faster.

ALTER TABLE scores ALTER COLUMN subscore SET DEFAULT 0, ALTER COLUMN gone SET DEFAULT 0;
