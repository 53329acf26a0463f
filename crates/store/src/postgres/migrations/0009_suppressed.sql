-- What a control keeps out of reports is kept in the book, so that every report can say how much that is.

-- What suppresses an occurrence: an ignore mark, or an entry of an allow list by its name. NULL of what is reported.
ALTER TABLE staged_findings ADD COLUMN suppressed_by text;
ALTER TABLE finding_occurrences ADD COLUMN suppressed_by text COLLATE "C";
-- Occurrences that it stands for, itself included: only the first ones in an object are kept.
ALTER TABLE staged_findings ADD COLUMN suppressed bigint;
ALTER TABLE finding_occurrences ADD COLUMN suppressed bigint;

-- To count them without walking through what is reported. Empty where nothing is suppressed.
CREATE INDEX finding_occurrences_suppressed
    ON finding_occurrences (job_id) WHERE suppressed_by IS NOT NULL;
