"""The page that an audit leaves behind."""
