#include "show.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>

void print_body(amqp_bytes_t body) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(body.bytes, body.len, digest, &size, EVP_md5(), NULL);
  printf(" bytes=%zu md5=", body.len);
  for (unsigned i = 0; i < size; ++i) printf("%02x", digest[i]);
}

static void print_text(const char* name, int set, amqp_bytes_t value) {
  if (set)
    printf(" %s=%.*s", name, (int)value.len, (char*)value.bytes);
  else
    printf(" %s=-", name);
}

void print_properties(const amqp_basic_properties_t* p) {
  print_text("content_type", p->_flags & AMQP_BASIC_CONTENT_TYPE_FLAG, p->content_type);
  if (p->_flags & AMQP_BASIC_DELIVERY_MODE_FLAG)
    printf(" delivery_mode=%d", p->delivery_mode);
  else
    printf(" delivery_mode=-");
  print_text("message_id", p->_flags & AMQP_BASIC_MESSAGE_ID_FLAG, p->message_id);
  print_text("correlation_id", p->_flags & AMQP_BASIC_CORRELATION_ID_FLAG, p->correlation_id);
  print_text("type", p->_flags & AMQP_BASIC_TYPE_FLAG, p->type);
}

static void print_value(const amqp_field_value_t* v) {
  printf("%c ", v->kind);
  switch (v->kind) {
    case AMQP_FIELD_KIND_BOOLEAN: printf("%d", v->value.boolean); break;
    case AMQP_FIELD_KIND_I8: printf("%d", v->value.i8); break;
    case AMQP_FIELD_KIND_U8: printf("%u", v->value.u8); break;
    case AMQP_FIELD_KIND_I16: printf("%d", v->value.i16); break;
    case AMQP_FIELD_KIND_U16: printf("%u", v->value.u16); break;
    case AMQP_FIELD_KIND_I32: printf("%" PRId32, v->value.i32); break;
    case AMQP_FIELD_KIND_U32: printf("%" PRIu32, v->value.u32); break;
    case AMQP_FIELD_KIND_I64: printf("%" PRId64, v->value.i64); break;
    case AMQP_FIELD_KIND_U64:
    case AMQP_FIELD_KIND_TIMESTAMP: printf("%" PRIu64, v->value.u64); break;
    case AMQP_FIELD_KIND_F32: printf("%g", (double)v->value.f32); break;
    case AMQP_FIELD_KIND_F64: printf("%g", v->value.f64); break;
    case AMQP_FIELD_KIND_DECIMAL: printf("%" PRIu32 "/10^%d", v->value.decimal.value, v->value.decimal.decimals); break;
    case AMQP_FIELD_KIND_UTF8: printf("%.*s", (int)v->value.bytes.len, (char*)v->value.bytes.bytes); break;
    case AMQP_FIELD_KIND_BYTES:
      for (size_t i = 0; i < v->value.bytes.len; ++i) printf("%02x", ((unsigned char*)v->value.bytes.bytes)[i]);
      break;
    case AMQP_FIELD_KIND_ARRAY:
      for (int i = 0; i < v->value.array.num_entries; ++i) {
        printf("[");
        print_value(&v->value.array.entries[i]);
        printf("]");
      }
      break;
    case AMQP_FIELD_KIND_TABLE:
      for (int i = 0; i < v->value.table.num_entries; ++i) {
        const amqp_table_entry_t* e = &v->value.table.entries[i];
        printf("{%.*s=", (int)e->key.len, (char*)e->key.bytes);
        print_value(&e->value);
        printf("}");
      }
      break;
    default: break;
  }
}

void print_table(const char* prefix, const amqp_table_t* table) {
  for (int i = 0; i < table->num_entries; ++i) {
    const amqp_table_entry_t* e = &table->entries[i];
    printf("%s%.*s=", prefix, (int)e->key.len, (char*)e->key.bytes);
    print_value(&e->value);
    printf("\n");
  }
}
