"""What people see: tables, words and numbers, said once."""
