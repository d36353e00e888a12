"""The report of `inspect` as one page: tables without a script, and with it a layer at a time."""
