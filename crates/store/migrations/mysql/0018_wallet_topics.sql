-- A wallet is a topic of webhooks, too: its member and its currency.

ALTER TABLE webhooks MODIFY topic VARBINARY(32) NOT NULL;
