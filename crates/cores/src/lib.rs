//! What is known of cores and what to do with them: observation, classes, ACPI, power model, policies. Neither measures nor actuates.
