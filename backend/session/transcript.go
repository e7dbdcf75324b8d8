package session

// storedKind is the kind of the record in column data, in SQL. storedKind is null for records of older versions that are nested deeper than
// SQLite reads (tooDeep): without json_valid such a record would end the whole query with an error.
const storedKind = `CASE WHEN json_valid(data) THEN json_extract(data, '$.kind') END`
