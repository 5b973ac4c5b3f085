"""The playground: a web page on which both networks are trained step by step."""
