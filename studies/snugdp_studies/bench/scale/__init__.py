"""How far the library goes: releases from large files and on Spark, beside the same work without privacy."""
