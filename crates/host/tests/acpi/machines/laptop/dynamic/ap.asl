DefinitionBlock ("", "SSDT", 2, "EFT", "APIST", 1)
{
    External (\_SB.PR00._PSS, MethodObj)
    External (\_SB.PR00._PCT, MethodObj)
    External (\_SB.PR00._PPC, MethodObj)
    External (\_SB.PR00._PSD, MethodObj)
    External (\_SB.PR01, DeviceObj)
    External (\_SB.PR02, DeviceObj)
    External (\_SB.PR03, DeviceObj)
    External (\_SB.PR03.BOOT, IntObj)
    External (\_SB.PR04, DeviceObj)
    External (\_SB.PCI0.KIND, IntObj)
    External (\_SB.PCI0.LPCB.EC0.THRM, FieldUnitObj)
    Scope (\_SB.PR01)
    {
        Method (_PPC, 0) { Return (\_SB.PR00._PPC ()) }
        Method (_PCT, 0) { Return (\_SB.PR00._PCT ()) }
        Method (_PSS, 0) { Return (\_SB.PR00._PSS ()) }
        Method (_PSD, 0) { Return (\_SB.PR00._PSD ()) }
    }
    // Decided by what the conditional around the tree made, which decides nothing.
    Scope (\_SB.PR02)
    {
        Method (_PSS, 0)
        {
            If (LEqual (\_SB.PCI0.KIND, 1)) { Return (LIST) }
            If (LEqual (\_SB.PCI0.KIND, 2)) { Return (LIST) }
            Return (LIST)
        }
        Name (LIST, Package ()
        {
            Package () { 2600, 28000, 10, 10, 0x1A00, 0x1A00 },
            Package () { 800, 6100, 10, 10, 0x0800, 0x0800 }
        })
    }
    // A hot board gets the lower half.
    Scope (\_SB.PR03)
    {
        Method (_PSS, 0)
        {
            If (LAnd (CondRefOf (\_SB.PR03.BOOT), LGreater (\_SB.PCI0.LPCB.EC0.THRM, 90)))
            {
                Return (Package () { Package () { 800, 6100, 10, 10, 0x0800, 0x0800 } })
            }
            Return (Package ()
            {
                Package () { 2600, 28000, 10, 10, 0x1A00, 0x1A00 },
                Package () { 800, 6100, 10, 10, 0x0800, 0x0800 }
            })
        }
    }
    If (CondRefOf (\_SB.PR04))
    {
        Scope (\_SB.PR04) { Method (_PSS, 0) { Return (\_SB.PR00._PSS ()) } }
    }
}
