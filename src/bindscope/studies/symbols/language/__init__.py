"""Identity scaling on a language-modelling task."""
