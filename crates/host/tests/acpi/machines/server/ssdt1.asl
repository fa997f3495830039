// States of all sockets come from one table and one method that makes them: as firmware does for many processors.
DefinitionBlock ("", "SSDT", 2, "EFT", "PMETER", 1)
{
    External (\_SB.OSPD, MethodObj)
    External (\_SB.PDCV, IntObj)
    External (\_SB.SCK0.CP00, DeviceObj)
    External (\_SB.SCK0.CP01, DeviceObj)
    External (\_SB.SCK1, DeviceObj)
    External (\_SB.SCK1.CP00, DeviceObj)
    External (\_SB.SCK1.CP01, DeviceObj)
    External (\PSTA, FieldUnitObj)
    External (\TPMV, FieldUnitObj)
    Scope (\_SB)
    {
        // Ratio and power, fastest first.
        Name (RATS, Buffer () { 27, 205, 24, 170, 18, 110, 12, 72 })
        Name (PSDC, Package () { Package () { 5, 0, 0, 0xFC, 2 } })
        Method (MAKE, 1, Serialized)
        {
            Store (Package (4) { Package (6) {}, Package (6) {}, Package (6) {}, Package (6) {} }, Local0)
            Store (0, Local1)
            While (LLess (Local1, 4))
            {
                Store (DerefOf (Index (RATS, Multiply (Local1, 2))), Local2)
                Store (DerefOf (Index (RATS, Add (Multiply (Local1, 2), 1))), Local3)
                Store (Package (6) { 0, 0, 10, 10, 0, 0 }, Local4)
                Store (Multiply (Local2, 100), Index (Local4, 0))
                Store (Multiply (Local3, 1000), Index (Local4, 1))
                Store (ShiftLeft (Local2, 8), Index (Local4, 4))
                Store (Or (ShiftLeft (Local2, 8), Arg0), Index (Local4, 5))
                Store (Local4, Index (Local0, Local1))
                Increment (Local1)
            }
            Return (Local0)
        }
        Method (DOMN, 1)
        {
            Store (Arg0, Index (DerefOf (Index (PSDC, 0)), 2))
            Return (PSDC)
        }
    }
    Scope (\_SB.SCK0.CP00)
    {
        Method (_PDC, 1) { \_SB.OSPD (Arg0) }
        Method (_PSS, 0) { Return (MAKE (0)) }
        Method (_PSD, 0) { Return (DOMN (0)) }
        Method (_PPC, 0) { Return (0) }
        Name (_PCT, Package ()
        {
            ResourceTemplate () { Register (FFixedHW, 0, 0, 0x199, ,) },
            ResourceTemplate () { Register (FFixedHW, 0, 0, 0x198, ,) }
        })
    }
    // The board's option to have no states.
    Scope (\_SB.SCK0.CP01)
    {
        Method (_PSS, 0)
        {
            If (LEqual (PSTA, 0)) { Return (Package () { Package () { 2700, 205000, 10, 10, 0x1B00, 0x1B00 } }) }
            Return (MAKE (0))
        }
        Method (_PSD, 0) { Return (DOMN (0)) }
    }
    If (CondRefOf (\_SB.SCK1))
    {
        Scope (\_SB.SCK1.CP00)
        {
            Method (_PSS, 0) { Return (MAKE (1)) }
            Method (_PSD, 0) { Return (DOMN (1)) }
        }
        Scope (\_SB.SCK1.CP01)
        {
            Method (_PSS, 0) { Return (MAKE (TPMV)) }
            Method (_PSD, 0) { Return (DOMN (1)) }
        }
    }
}
