fn main() {
    blockyard_adapter_lock::export_version("rlsf");
}
