use super::*;
use alloc::string::ToString;

#[test]
fn a_name_and_a_code_lead_back_to_their_component() {
    for role in Role::ALL {
        for instance in 0..=255 {
            let id = ComponentId::new(role, instance);
            assert_eq!(ComponentId::from_code(id.code()), Some(id));
            if instance == 0 || role.is_counted() {
                assert_eq!(id.to_string().parse(), Ok(id));
            }
        }
    }
    for code in [0, 1, 255, 8 << 8, u32::MAX] {
        assert_eq!(ComponentId::from_code(code), None, "{code}");
    }
}

#[test]
fn no_component_has_two_names() {
    for name in ["", "1", "tcp0", "tcp01", "tcp256", "tcp-1", "tcp 1", "nic", "nic00", "ip1", "upd", "Tcp"] {
        assert_eq!(name.parse::<ComponentId>(), Err(UnknownComponent), "{name}");
    }
}
