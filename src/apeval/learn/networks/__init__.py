"""Networks that several methods train; torch is loaded with them."""
