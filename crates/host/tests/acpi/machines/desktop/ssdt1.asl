// States as AMD's AGESA writes them: named packages, equal on all, each with _PCT, _PSD, _PPC.
DefinitionBlock ("", "SSDT", 2, "EFT", "PSTATES", 1)
{
    External (\_SB.PLTF.C000, DeviceObj)
    External (\_SB.PLTF.C001, DeviceObj)
    External (\_SB.PLTF.C002, DeviceObj)
    External (\_SB.PLTF.C003, DeviceObj)
    External (\_SB.PLTF.C004, DeviceObj)
    External (\PSEN, FieldUnitObj)
    External (\PSTN, FieldUnitObj)
    External (\CPB0, FieldUnitObj)
    External (\CORE, IntObj)
    External (\BNAM, StrObj)
    Scope (\_SB.PLTF.C000)
    {
        Name (_PCT, Package ()
        {
            ResourceTemplate () { Register (FFixedHW, 64, 0, 0xC0010062, ,) },
            ResourceTemplate () { Register (FFixedHW, 64, 0, 0xC0010063, ,) }
        })
        Name (_PSS, Package ()
        {
            Package () { 0xED8, 0xE4C, 1, 1, 0, 0 },
            Package () { 0xAF0, 0x9C4, 1, 1, 1, 1 },
            Package () { 0x898, 0x708, 1, 1, 2, 2 }
        })
        Name (XPSS, Package ()
        {
            Package () { 0xED8, 0xE4C, 1, 1, Buffer () { 0, 0, 0, 0, 0, 0, 0, 0 }, Buffer () { 0, 0, 0, 0, 0, 0, 0, 0 } }
        })
        Name (_PSD, Package () { Package () { 5, 0, 0, 0xFD, 2 } })
        Method (_PPC, 0) { Return (PSEN) }
    }
    // Its states are made when they are asked for, in a loop, from a base.
    Scope (\_SB.PLTF.C001)
    {
        Name (_PSD, Package () { Package () { 5, 0, 0, 0xFD, 2 } })
        Method (_PSS, 0, Serialized)
        {
            Name (LIST, Package (3) {
                Package (6) { 0, 0, 1, 1, 0, 0 }, Package (6) { 0, 0, 1, 1, 0, 0 }, Package (6) { 0, 0, 1, 1, 0, 0 } })
            Store (0, Local0)
            While (LLess (Local0, SizeOf (LIST)))
            {
                Store (Subtract (3800, Multiply (Local0, 800)), Index (DerefOf (Index (LIST, Local0)), 0))
                Divide (Multiply (3660, Subtract (4, Local0)), 4, , Local1)
                Store (Local1, Index (DerefOf (Index (LIST, Local0)), 1))
                Store (Local0, Index (DerefOf (Index (LIST, Local0)), 4))
                Store (Local0, Index (DerefOf (Index (LIST, Local0)), 5))
                Increment (Local0)
            }
            Return (LIST)
        }
    }
    // Boost is in CMOS: without it the first state goes.
    Scope (\_SB.PLTF.C002)
    {
        Method (_PSS, 0)
        {
            If (LEqual (CPB0, 1)) { Return (\_SB.PLTF.C000._PSS) }
            Return (Package () {
                Package () { 0xAF0, 0x9C4, 1, 1, 1, 1 },
                Package () { 0x898, 0x708, 1, 1, 2, 2 } })
        }
    }
    // What was decided at module level decides here, and not about the frequencies.
    Scope (\_SB.PLTF.C003)
    {
        Method (_PSS, 0)
        {
            Store (Package () { Package () { 3800, 3660, 1, 1, 0, 0 }, Package () { 2200, 1800, 1, 1, 2, 2 } }, Local0)
            Store (Add (CORE, 10), Index (DerefOf (Index (Local0, 0)), 2))
            If (LEqual (BNAM, "two")) { Store (7, Index (DerefOf (Index (Local0, 1)), 3)) }
            Return (Local0)
        }
    }
    If (CondRefOf (\_SB.PLTF.C004))
    {
        Scope (\_SB.PLTF.C004) { Alias (\_SB.PLTF.C000._PSS, _PSS) }
    }
}
