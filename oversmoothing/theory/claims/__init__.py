"""What is claimed: two files a chapter, t1.md and t1.py; a folder where a chapter or a
paper has not got them yet."""
