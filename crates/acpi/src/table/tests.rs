use super::*;

#[test]
fn damaged_tables_are_refused() {
    assert!(Table::parse(b"DSDT").is_err());
    let mut bytes = [0u8; 40];
    bytes[..4].copy_from_slice(b"SSDT");
    bytes[4] = 40;
    assert!(matches!(Table::parse(&bytes).unwrap_err(), TableError::Checksum(_)));
    bytes[9] = 0u8.wrapping_sub(bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte)));
    assert!(Table::parse(&bytes).is_ok());
    bytes[4] = 41;
    assert!(Table::parse(&bytes).unwrap_err().to_string().contains("41 bytes"));
}

#[test]
fn madt_entries_are_read_and_bad_lengths_refused() {
    let table =
        |body: &'static [u8]| Table { signature: *b"APIC", revision: 1, length: 0, body, bytes: body };
    let body: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 5, 2, 1, 0, 0, 0, 0, 8, 6, 3, 0, 0, 0, 0];
    let madt = Madt::parse(&table(body)).unwrap();
    assert_eq!(madt.processors, [MadtProcessor { acpi_id: 5, hardware_id: 2 }]);
    assert!(Madt::parse(&table(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0])).is_err());
    assert!(Madt::parse(&table(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 1])).is_err());
    assert!(Madt::parse(&table(&[0])).is_err());
}
