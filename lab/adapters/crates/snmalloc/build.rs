fn main() {
    blockyard_adapter_lock::export_version("snmalloc-sys");
}
