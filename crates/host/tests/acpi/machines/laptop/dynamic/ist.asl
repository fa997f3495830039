DefinitionBlock ("", "SSDT", 2, "EFT", "CPU0IST", 1)
{
    External (\_SB.PR00, DeviceObj)
    External (\PDC0, IntObj)
    External (\CFGD, FieldUnitObj)
    External (\OSYS, FieldUnitObj)
    External (\PPCM, FieldUnitObj)
    External (\TCNT, FieldUnitObj)
    Scope (\_SB.PR00)
    {
        Method (_PPC, 0) { Return (PPCM) }
        Method (_PCT, 0)
        {
            If (LAnd (And (CFGD, 1), And (PDC0, 1)))
            {
                Return (Package () {
                    ResourceTemplate () { Register (FFixedHW, 0, 0, 0, ,) },
                    ResourceTemplate () { Register (FFixedHW, 0, 0, 0, ,) } })
            }
            Return (Package () {
                ResourceTemplate () { Register (SystemIO, 16, 0, 0x1880, ,) },
                ResourceTemplate () { Register (SystemIO, 16, 0, 0x1882, ,) } })
        }
        // The same speeds either way; how a state is entered is another.
        Method (_PSS, 0)
        {
            If (LAnd (And (CFGD, 1), And (PDC0, 1))) { Return (NPSS) }
            Return (SPSS)
        }
        Name (SPSS, Package ()
        {
            Package () { 2601, 28000, 110, 10, 0x83, 0 },
            Package () { 2600, 28000, 110, 10, 0x82, 1 },
            Package () { 1900, 17500, 110, 10, 0x81, 2 },
            Package () { 800, 6100, 110, 10, 0x80, 3 }
        })
        Name (NPSS, Package ()
        {
            Package () { 2601, 28000, 10, 10, 0x2300, 0x2300 },
            Package () { 2600, 28000, 10, 10, 0x1A00, 0x1A00 },
            Package () { 1900, 17500, 10, 10, 0x1300, 0x1300 },
            Package () { 800, 6100, 10, 10, 0x0800, 0x0800 }
        })
        Name (PSDF, 0)
        Name (HPSD, Package () { Package () { 5, 0, 0, 0xFE, 4 } })
        Name (SPSD, Package () { Package () { 5, 0, 0, 0xFC, 4 } })
        Method (_PSD, 0)
        {
            If (LNot (PSDF))
            {
                Store (TCNT, Index (DerefOf (Index (HPSD, 0)), 4))
                Store (TCNT, Index (DerefOf (Index (SPSD, 0)), 4))
                Store (Ones, PSDF)
            }
            If (And (PDC0, 0x0800)) { Return (HPSD) }
            Return (SPSD)
        }
    }
}
