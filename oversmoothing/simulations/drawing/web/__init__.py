"""Pages of HTML: one frame, one style and one set of scripts for every page that is written."""
