-- Nothing: the number is kept free.
SELECT 1;
