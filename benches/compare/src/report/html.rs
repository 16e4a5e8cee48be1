use super::Report;
pub fn page(_: &Report) -> String {
    String::new()
}
