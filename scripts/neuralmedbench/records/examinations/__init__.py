"""The examinations of a case: what it holds, the words that people use for them, and which one a request asks for."""
