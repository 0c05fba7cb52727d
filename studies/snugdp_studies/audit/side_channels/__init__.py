"""Bad input and side channels of every public function and class of the library."""
