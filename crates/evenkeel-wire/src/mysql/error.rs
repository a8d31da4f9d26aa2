//! The ERR packet.
//!
//! Source: MySQL Internals, "ERR_Packet" and "Protocol::Packet". Only the form that precedes the handshake is here.

/// `ER_UNKNOWN_ERROR`, the code of an error that has no code of its own.
pub const UNKNOWN_ERROR: u16 = 1105;

/// The most bytes of a message that go into a packet; MySQL's own limit (`MYSQL_ERRMSG_SIZE`).
pub const MESSAGE_BYTES_MAX: usize = 512;

const HEADER_BYTES: usize = 4;
const ERROR_MARK: u8 = 0xff;

/// An ERR packet in place of the server's greeting, which every client reads as "connection refused, because …".
///
/// It carries no SQL state: before the handshake a client has not said that it knows of them, and would show it as part of
/// the message. A longer message is cut at [`MESSAGE_BYTES_MAX`], between characters.
pub fn error_instead_of_greeting(code: u16, message: &str) -> Vec<u8> {
    let message = &message.as_bytes()[..message.floor_char_boundary(MESSAGE_BYTES_MAX)];
    let payload_bytes = 1 + size_of::<u16>() + message.len();
    let mut packet = Vec::with_capacity(HEADER_BYTES + payload_bytes);
    packet.extend_from_slice(&length_and_sequence(payload_bytes));
    packet.push(ERROR_MARK);
    packet.extend_from_slice(&code.to_le_bytes());
    packet.extend_from_slice(message);
    packet
}

/// Three bytes of length, lowest first, and the sequence number of the first packet of a connection.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a payload has at most 515 bytes"
)]
const fn length_and_sequence(payload_bytes: usize) -> [u8; HEADER_BYTES] {
    let [low, middle, high, _] = (payload_bytes as u32).to_le_bytes();
    [low, middle, high, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What MariaDB 10.11 sends to the connection after the last one it takes, byte for byte.
    #[test]
    fn the_packet_is_the_one_a_full_database_sends() {
        let packet = error_instead_of_greeting(1040, "Too many connections");
        assert_eq!(packet, b"\x17\x00\x00\x00\xff\x10\x04Too many connections");
    }

    /// A message of any length makes a packet whose header tells the truth.
    #[test]
    fn a_long_message_is_cut_between_characters() {
        let packet = error_instead_of_greeting(UNKNOWN_ERROR, &"é".repeat(400));
        assert_eq!(packet.len(), 4 + 3 + MESSAGE_BYTES_MAX);
        assert_eq!(packet[..4], [3, 2, 0, 0]);

        let odd = error_instead_of_greeting(UNKNOWN_ERROR, &format!("x{}", "é".repeat(400)));
        assert_eq!(odd.len(), 4 + 3 + MESSAGE_BYTES_MAX - 1);
        assert!(std::str::from_utf8(&odd[7..]).is_ok());
    }
}
