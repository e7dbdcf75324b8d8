package session

// storedKind is the kind of what is stored as data, in SQL; null of what versions before have stored deeper than SQLite reads (tooDeep): without
// json_valid such a record ends the whole query with an error.
const storedKind = `CASE WHEN json_valid(data) THEN json_extract(data, '$.kind') END`
