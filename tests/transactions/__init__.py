"""Jobs in users' own transactions, over every driver."""
