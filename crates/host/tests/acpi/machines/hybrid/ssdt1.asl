// Collaborative control beside P-states: _CPC where the system takes it, _PSS with and without a state for turbo.
DefinitionBlock ("", "SSDT", 2, "EFT", "CPUSSDT", 1)
{
    External (\_SB.PR00, DeviceObj)
    External (\_SB.PR01, DeviceObj)
    External (\_SB.PR02, DeviceObj)
    External (\_SB.PR03, DeviceObj)
    External (\HWPE, FieldUnitObj)
    External (\OSYS, FieldUnitObj)
    External (\BIGM, FieldUnitObj)
    External (\CPPC, FieldUnitObj)
    External (\_SB.PC00.RPSL, FieldUnitObj)
    External (\_SB.PC00.GFX0, DeviceObj)
    Scope (\_SB.PR00)
    {
        Name (CPC2, Package (21)
        {
            21, 2,
            ResourceTemplate () { Register (FFixedHW, 8, 0, 0x771, 4) },
            ResourceTemplate () { Register (FFixedHW, 8, 8, 0x771, 4) },
            ResourceTemplate () { Register (FFixedHW, 8, 16, 0x771, 4) },
            ResourceTemplate () { Register (FFixedHW, 8, 24, 0x771, 4) },
            ResourceTemplate () { Register (FFixedHW, 8, 8, 0x771, 4) },
            ResourceTemplate () { Register (FFixedHW, 8, 16, 0x774, 4) },
            ResourceTemplate () { Register (FFixedHW, 8, 0, 0x774, 4) },
            ResourceTemplate () { Register (FFixedHW, 8, 8, 0x774, 4) },
            ResourceTemplate () { Register (SystemMemory, 0, 0, 0, ,) },
            ResourceTemplate () { Register (SystemMemory, 0, 0, 0, ,) },
            ResourceTemplate () { Register (FFixedHW, 64, 0, 0xE7, 4) },
            ResourceTemplate () { Register (FFixedHW, 64, 0, 0xE8, 4) },
            ResourceTemplate () { Register (FFixedHW, 2, 1, 0x777, 4) },
            ResourceTemplate () { Register (FFixedHW, 1, 0, 0x770, 4) },
            ResourceTemplate () { Register (FFixedHW, 10, 32, 0x774, 4) },
            ResourceTemplate () { Register (FFixedHW, 8, 24, 0x774, 4) },
            ResourceTemplate () { Register (SystemMemory, 0, 0, 0, ,) },
            0, 0
        })
        Name (TPSS, Package ()
        {
            Package () { 2601, 45000, 10, 10, 0x3200, 0x3200 },
            Package () { 2600, 45000, 10, 10, 0x1A00, 0x1A00 },
            Package () { 1500, 21000, 10, 10, 0x0F00, 0x0F00 },
            Package () { 400, 4300, 10, 10, 0x0400, 0x0400 }
        })
        Name (LPSS, Package ()
        {
            Package () { 2600, 45000, 10, 10, 0x1A00, 0x1A00 },
            Package () { 400, 4300, 10, 10, 0x0400, 0x0400 }
        })
        Method (_PSS, 0)
        {
            If (LEqual (HWPE, 0x80)) { Return (LPSS) }
            Return (TPSS)
        }
        Method (_PPC, 0) { Return (0) }
        Name (_PSD, Package () { Package () { 5, 0, 0, 0xFE, 1 } })
    }
    If (LEqual (CPPC, 1))
    {
        Scope (\_SB.PR00) { Method (_CPC, 0) { Return (CPC2) } }
        Scope (\_SB.PR01) { Method (_CPC, 0) { Return (\_SB.PR00.CPC2) } }
    }
    Scope (\_SB.PR01) { Method (_PSS, 0) { Return (\_SB.PR00._PSS ()) } }
    // An efficient core's list, the same whatever the graphics are.
    Scope (\_SB.PR02)
    {
        Name (EPSS, Package ()
        {
            Package () { 1901, 9000, 10, 10, 0x2600, 0x2600 },
            Package () { 1900, 9000, 10, 10, 0x1300, 0x1300 },
            Package () { 700, 2100, 10, 10, 0x0700, 0x0700 }
        })
        Method (_PSS, 0)
        {
            If (CondRefOf (\_SB.PC00.GFX0)) { Store (1, Local0) } Else { Store (2, Local0) }
            If (LEqual (Local0, 3)) { Return (Package () {}) }
            Return (EPSS)
        }
    }
    // Which kind it is stands in a map; what the firmware found fastest is patched in.
    Scope (\_SB.PR03)
    {
        Method (_PSS, 0)
        {
            If (And (ShiftRight (BIGM, 3), 1)) { Store (\_SB.PR00.LPSS, Local0) } Else { Store (\_SB.PR02.EPSS, Local0) }
            Store (Or (\_SB.PC00.RPSL, 0x100), Index (DerefOf (Index (Local0, 1)), 5))
            Return (Local0)
        }
    }
}
