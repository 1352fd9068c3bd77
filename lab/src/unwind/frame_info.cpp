// The formats are those of the Linux Standard Base, "Exception Frames", and of DWARF 5, 6.4.
#include "unwind/frame_info.hpp"

#include "unwind/bytes.hpp"

namespace blockyard::unwind {
namespace {

constexpr std::uint8_t omitted = 0xff;

/// What a common information entry (CIE) says.
struct Common {
  std::uint64_t code_unit = 0;
  std::int64_t data_unit = 0;
  std::uint64_t return_register = 0;
  std::uint8_t encoding = 0;  ///< of the addresses in its records
  bool has_augmentation_bytes = false;
  bool is_signal_frame = false;
  Expression program;
};

/// One frame description entry (FDE).
struct Record {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Common common;
  Expression program;
};

// The entry's bytes after its length, and false for the terminator or a length that does not fit.
bool read_length(Bytes& table, Bytes& entry) {
  std::uint64_t length = table.read<std::uint32_t>();
  if (length == 0xffffffff) length = table.read<std::uint64_t>();
  if (table.failed() || length == 0 || length > table.left()) return false;
  entry = Bytes(table.at(), table.at() + length);
  return true;
}

bool read_common(Bytes entry, Common& common) {
  if (entry.read<std::uint32_t>() != 0) return false;
  const auto version = entry.read<std::uint8_t>();
  if (version != 1 && version != 3 && version != 4) return false;
  const std::uint8_t* augmentation = entry.at();
  while (entry.read<std::uint8_t>() != 0) {
  }
  if (version == 4) entry.skip(2);  // sizes of addresses and of segment selectors
  common.code_unit = entry.uleb();
  common.data_unit = entry.sleb();
  common.return_register = version == 1 ? entry.read<std::uint8_t>() : entry.uleb();
  if (entry.failed()) return false;
  if (*augmentation == 'z') {
    common.has_augmentation_bytes = true;
    const std::uint64_t bytes = entry.uleb();
    if (bytes > entry.left()) return false;
    Bytes data(entry.at(), entry.at() + bytes);
    entry.skip(bytes);
    for (++augmentation; *augmentation != 0; ++augmentation) {
      switch (*augmentation) {
        case 'R':
          common.encoding = data.read<std::uint8_t>();
          break;
        case 'P':
          data.skip_pointer(data.read<std::uint8_t>());
          break;
        case 'L':
          data.skip(1);
          break;
        case 'S':
          common.is_signal_frame = true;
          break;
        case 'B':
          break;
        default:
          return false;
      }
    }
    if (data.failed()) return false;
  } else if (*augmentation != 0) {
    return false;
  }
  common.program = {entry.at(), entry.end()};
  return !entry.failed();
}

// Reads the record that begins at `at`; false for a common entry, the terminator, and what can't be understood.
bool read_record(const Object& object, const std::uint8_t* at, Record& record) {
  if (at < object.tables_begin || at >= object.tables_end) return false;
  Bytes table(at, object.tables_end);
  Bytes entry(at, at);
  if (!read_length(table, entry)) return false;
  const std::uint8_t* const distance_at = entry.at();
  const std::uint64_t distance = entry.read<std::uint32_t>();
  if (distance == 0 || distance > static_cast<std::uint64_t>(distance_at - object.tables_begin)) return false;
  Bytes common_table(distance_at - distance, object.tables_end);
  Bytes common_entry(at, at);
  if (!read_length(common_table, common_entry) || !read_common(common_entry, record.common)) return false;
  record.begin = entry.pointer(record.common.encoding, 0);
  record.end = record.begin + entry.pointer(record.common.encoding & 0x0f, 0);
  if (record.common.has_augmentation_bytes) entry.skip(entry.uleb());
  if (entry.failed()) return false;
  record.program = {entry.at(), entry.end()};
  return true;
}

bool covers(const Record& record, std::uint64_t address) { return address >= record.begin && address < record.end; }

// Without a table to search, every record in turn.
bool search_all(const Object& object, const std::uint8_t* frames, std::uint64_t address, Record& record) {
  if (frames < object.tables_begin || frames >= object.tables_end) return false;
  Bytes table(frames, object.tables_end);
  for (;;) {
    const std::uint8_t* const at = table.at();
    Bytes entry(at, at);
    if (!read_length(table, entry)) return false;
    table = Bytes(entry.end(), object.tables_end);
    record = Record{};
    if (read_record(object, at, record) && covers(record, address)) return true;
  }
}

bool find_record(const Object& object, std::uint64_t address, Record& record) {
  const auto data = reinterpret_cast<std::uint64_t>(object.header);
  Bytes header(object.header, object.tables_end);
  const auto version = header.read<std::uint8_t>();
  const auto frames_encoding = header.read<std::uint8_t>();
  const auto count_encoding = header.read<std::uint8_t>();
  const auto table_encoding = header.read<std::uint8_t>();
  if (version != 1 || frames_encoding == omitted) return false;
  const auto* frames = reinterpret_cast<const std::uint8_t*>(header.pointer(frames_encoding, data));
  const std::uint64_t count = count_encoding == omitted ? 0 : header.pointer(count_encoding, data);
  if (header.failed()) return false;
  // Pairs of 32-bit offsets from the header, which is what every linker writes.
  struct Pair {
    std::int32_t function;
    std::int32_t record;
  };
  if (table_encoding != 0x3b || count == 0) return search_all(object, frames, address, record);
  if (count > header.left() / sizeof(Pair)) return false;
  const std::uint8_t* const pairs = header.at();
  const auto pair_at = [pairs](std::uint64_t index) {
    Pair pair;
    std::memcpy(&pair, pairs + index * sizeof(Pair), sizeof pair);
    return pair;
  };
  const auto wanted = static_cast<std::int64_t>(address - data);
  if (wanted < pair_at(0).function) return false;
  std::uint64_t low = 0;
  for (std::uint64_t high = count; high - low > 1;) {
    const std::uint64_t middle = low + (high - low) / 2;
    (pair_at(middle).function <= wanted ? low : high) = middle;
  }
  return read_record(object, object.header + pair_at(low).record, record) && covers(record, address);
}

/// Runs the programs of a record and its common entry.
class Machine {
 public:
  Machine(const Record& record, Workspace& space, Row& row)
      : common_(record.common), space_(space), row_(row), location_(record.begin) {}

  // Runs until an instruction after `address` begins. False for what it does not know.
  bool run(const Expression& program, std::uint64_t address) {
    Bytes code(program.begin, program.end);
    while (!code.is_at_end() && location_ <= address) {
      if (!step(code)) return false;
    }
    return !code.failed();
  }
  void keep_initial() {
    space_.initial = row_;
    has_initial_ = true;
  }

 private:
  void set(std::uint64_t number, Place place, std::int64_t offset = 0, Expression expression = {}) {
    if (number == common_.return_register) number = register_return;
    if (number < register_count) row_.registers[number] = {place, offset, expression};
  }
  void restore(std::uint64_t number) {
    if (number == common_.return_register) number = register_return;
    if (number < register_count)
      row_.registers[number] = has_initial_ ? space_.initial.registers[number] : RegisterRule{};
  }
  static Expression read_expression(Bytes& code) {
    const std::uint64_t bytes = code.uleb();
    const std::uint8_t* const begin = code.at();
    code.skip(bytes);
    return {begin, code.at()};
  }
  void set_cfa(std::uint64_t number, std::int64_t offset) {
    row_.cfa_register = static_cast<unsigned>(number);
    row_.cfa_offset = offset;
    row_.cfa_expression = {};
  }

  bool step(Bytes& code) {
    const auto instruction = code.read<std::uint8_t>();
    const std::uint8_t low = instruction & 0x3f;
    switch (instruction & 0xc0) {
      case 0x40:  // DW_CFA_advance_loc
        location_ += low * common_.code_unit;
        return true;
      case 0x80:  // DW_CFA_offset
        set(low, Place::at_cfa, static_cast<std::int64_t>(code.uleb()) * common_.data_unit);
        return true;
      case 0xc0:  // DW_CFA_restore
        restore(low);
        return true;
      default:
        return step_extended(instruction, code);
    }
  }

  bool step_extended(std::uint8_t instruction, Bytes& code) {
    switch (instruction) {
      case 0x00:  // DW_CFA_nop
        return true;
      case 0x01:  // DW_CFA_set_loc
        location_ = code.pointer(common_.encoding, 0);
        return true;
      case 0x02:  // DW_CFA_advance_loc1
        location_ += code.read<std::uint8_t>() * common_.code_unit;
        return true;
      case 0x03:  // DW_CFA_advance_loc2
        location_ += code.read<std::uint16_t>() * common_.code_unit;
        return true;
      case 0x04:  // DW_CFA_advance_loc4
        location_ += code.read<std::uint32_t>() * common_.code_unit;
        return true;
      case 0x05: {  // DW_CFA_offset_extended
        const std::uint64_t number = code.uleb();
        set(number, Place::at_cfa, static_cast<std::int64_t>(code.uleb()) * common_.data_unit);
        return true;
      }
      case 0x06:  // DW_CFA_restore_extended
        restore(code.uleb());
        return true;
      case 0x07:  // DW_CFA_undefined
        set(code.uleb(), Place::undefined);
        return true;
      case 0x08:  // DW_CFA_same_value
        set(code.uleb(), Place::same);
        return true;
      case 0x09: {  // DW_CFA_register
        const std::uint64_t number = code.uleb();
        set(number, Place::in_register, static_cast<std::int64_t>(code.uleb()));
        return true;
      }
      case 0x0a:  // DW_CFA_remember_state
        if (remembered_ == Workspace::most_remembered) return false;
        space_.remembered[remembered_++] = row_;
        return true;
      case 0x0b:  // DW_CFA_restore_state
        if (remembered_ == 0) return false;
        row_ = space_.remembered[--remembered_];
        return true;
      case 0x0c: {  // DW_CFA_def_cfa
        const std::uint64_t number = code.uleb();
        set_cfa(number, static_cast<std::int64_t>(code.uleb()));
        return true;
      }
      case 0x0d:  // DW_CFA_def_cfa_register
        set_cfa(code.uleb(), row_.cfa_offset);
        return true;
      case 0x0e:  // DW_CFA_def_cfa_offset
        set_cfa(row_.cfa_register, static_cast<std::int64_t>(code.uleb()));
        return true;
      case 0x0f:  // DW_CFA_def_cfa_expression
        row_.cfa_expression = read_expression(code);
        return true;
      case 0x10:    // DW_CFA_expression
      case 0x16: {  // DW_CFA_val_expression
        const std::uint64_t number = code.uleb();
        set(number, instruction == 0x10 ? Place::at_expression : Place::is_expression, 0, read_expression(code));
        return true;
      }
      case 0x11: {  // DW_CFA_offset_extended_sf
        const std::uint64_t number = code.uleb();
        set(number, Place::at_cfa, code.sleb() * common_.data_unit);
        return true;
      }
      case 0x12: {  // DW_CFA_def_cfa_sf
        const std::uint64_t number = code.uleb();
        set_cfa(number, code.sleb() * common_.data_unit);
        return true;
      }
      case 0x13:  // DW_CFA_def_cfa_offset_sf
        set_cfa(row_.cfa_register, code.sleb() * common_.data_unit);
        return true;
      case 0x14:    // DW_CFA_val_offset
      case 0x15: {  // DW_CFA_val_offset_sf
        const std::uint64_t number = code.uleb();
        const std::int64_t offset = instruction == 0x14 ? static_cast<std::int64_t>(code.uleb()) : code.sleb();
        set(number, Place::is_cfa, offset * common_.data_unit);
        return true;
      }
      case 0x2e:  // DW_CFA_GNU_args_size
        code.uleb();
        return true;
      case 0x2f: {  // DW_CFA_GNU_negative_offset_extended
        const std::uint64_t number = code.uleb();
        set(number, Place::at_cfa, -static_cast<std::int64_t>(code.uleb()) * common_.data_unit);
        return true;
      }
      default:
        return false;
    }
  }

  const Common& common_;
  Workspace& space_;
  Row& row_;
  std::uint64_t location_;
  bool has_initial_ = false;
  unsigned remembered_ = 0;
};

}  // namespace

bool find_row(const Object& object, std::uint64_t address, Workspace& space, Row& row) {
  if (object.header == nullptr) return false;
  Record record;
  if (!find_record(object, address, record)) return false;
  row = Row{};
  row.is_signal_frame = record.common.is_signal_frame;
  Machine machine(record, space, row);
  // A common entry's program holds for every address of its records.
  if (!machine.run(record.common.program, record.begin)) return false;
  machine.keep_initial();
  return machine.run(record.program, address);
}

std::uint64_t find_function(const Object& object, std::uint64_t address) {
  Record record;
  return object.header != nullptr && find_record(object, address, record) ? record.begin : 0;
}

}  // namespace blockyard::unwind
