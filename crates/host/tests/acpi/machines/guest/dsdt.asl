// A virtual machine in the manner of QEMU and its kin, written for eft: processors that come and go behind a port, and
// no states. One processor is of a hypervisor that shows its host's.
DefinitionBlock ("", "DSDT", 1, "EFT", "GUEST", 1)
{
    OperationRegion (DBG, SystemIO, 0x0402, 1)
    Field (DBG, ByteAcc, NoLock, Preserve) { DBGB, 8 }
    Store (0x45, DBGB)
    Scope (\_SB)
    {
        Device (PCI0) { Name (_HID, EisaId ("PNP0A03")) Name (_BBN, 0) }
        Device (PRES)
        {
            Name (_HID, EisaId ("PNP0A06"))
            OperationRegion (PRST, SystemIO, 0xAF00, 12)
            Field (PRST, ByteAcc, NoLock, WriteAsZeros) { Offset (4), CPEN, 1, CINS, 1, CRMV, 1, CEJ0, 1, Offset (5), CCMD, 8 }
            Field (PRST, DWordAcc, NoLock, Preserve) { CSEL, 32, Offset (8), CDAT, 32 }
            Mutex (CPLK, 0)
        }
        Device (CPUS)
        {
            Name (_HID, "ACPI0010")
            Name (_CID, EisaId ("PNP0A05"))
            Method (CSTA, 1, Serialized)
            {
                Acquire (\_SB.PRES.CPLK, 0xFFFF)
                Store (Arg0, \_SB.PRES.CSEL)
                Store (0, Local0)
                If (LEqual (\_SB.PRES.CPEN, 1)) { Store (0x0F, Local0) }
                Release (\_SB.PRES.CPLK)
                Return (Local0)
            }
            Processor (C000, 0, 0, 0) { Method (_STA, 0, Serialized) { Return (CSTA (0)) } }
            Processor (C001, 1, 0, 0) { Method (_STA, 0, Serialized) { Return (CSTA (1)) } }
            Device (C002) { Name (_HID, "ACPI0007") Name (_UID, 2) Method (_STA, 0, Serialized) { Return (CSTA (2)) } }
        }
        OperationRegion (BDAT, SystemMemory, 0xFED40000, 0x100)
        Field (BDAT, DWordAcc, NoLock, Preserve) { HOST, 32 }
        // The number of processors was counted by whoever made the machine.
        Name (NCPU, 3)
        While (LLess (NCPU, And (HOST, 7))) { Increment (NCPU) }
    }
    If (LEqual (\_SB.HOST, 2))
    {
        Scope (\_SB.CPUS.C002) { Name (_PSS, Package () { Package () { 2100, 65000, 10, 10, 0, 0 } }) }
    }
}
